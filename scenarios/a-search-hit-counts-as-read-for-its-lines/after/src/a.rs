// a
fn one() {}

// b
fn two() {}
fn five() {}
fn six() {}
