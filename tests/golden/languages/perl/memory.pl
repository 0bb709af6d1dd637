my @blocks;
push @blocks, "x" x (1 << 20) . @blocks while 1;
