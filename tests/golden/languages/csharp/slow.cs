class Slow
{
    static volatile int turns;

    static void Main()
    {
        while (true) turns++;
    }
}
