/* Does nothing, well. */
int main(void)
{
    return 0;
}
