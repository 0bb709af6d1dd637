import std.stdio;

void main()
{
    long a, b;
    readf(" %s %s", &a, &b);
    writeln(a + b);
}
