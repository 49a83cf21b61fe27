1
two
three
