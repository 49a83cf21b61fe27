// 1
// 2
// 3
// 4
fn three() {}
// three
// five
