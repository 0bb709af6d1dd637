using System;

class Crash
{
    static void Main()
    {
        throw new InvalidOperationException();
    }
}
