fn main() {
    set_up();
    run();
}

fn run() {
    work_hard();
}
