fn connect() {}
