const sum: number = "no number";
