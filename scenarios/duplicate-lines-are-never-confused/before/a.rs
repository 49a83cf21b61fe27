fn a() {
    x
}

fn b() {
    y
}

fn c() {
    z
}
