fn total() {
	let sum = 1;
	print(sum);
}
fn other() {
	print(sum);
}
