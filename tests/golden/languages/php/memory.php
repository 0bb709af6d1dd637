<?php
$blocks = [];
while (true) {
    $blocks[] = str_repeat("x", 1 << 20);
}
