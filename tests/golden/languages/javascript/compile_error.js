console.log("unfinished";
