fn main() {
    let mut turns: u64 = 0;
    loop {
        unsafe { std::ptr::write_volatile(&mut turns, 1) };
    }
}
