fn total() {
	let sum = 1;
	show(sum);
}
fn other() {
	show(sum);
}
