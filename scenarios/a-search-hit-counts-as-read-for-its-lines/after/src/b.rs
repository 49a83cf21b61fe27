// 1
// 2
// 3
// 4
fn third() {}
// three
// five
