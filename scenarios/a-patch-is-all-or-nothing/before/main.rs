fn main() {
    setup();
    run();
}

fn run() {
    work();
}
