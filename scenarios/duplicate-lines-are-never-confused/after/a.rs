fn zero() {
    0
}

fn a() {
    x
    more
}
}

fn b() {
    y
    after_y
}

fn c() {
    z
}
