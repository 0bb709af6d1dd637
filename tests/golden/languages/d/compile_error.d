void main()
{
    undeclared();
}
