using System.Collections.Generic;

class Memory
{
    static void Main()
    {
        var blocks = new List<byte[]>();
        while (true)
        {
            var block = new byte[1 << 20];
            for (var i = 0; i < block.Length; i += 4096) block[i] = 1;
            blocks.Add(block);
        }
    }
}
