// a
fn one() {}

// b
fn two() {}
