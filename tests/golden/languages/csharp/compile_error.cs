class Broken
{
    static void Main()
    {
        Undeclared();
    }
}
