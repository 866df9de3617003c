/* What loads.c loads. */
long work(long number)
{
    volatile long sum = 0;
    for (int i = 0; i < 200; i++)
        sum += number % (i + 1);
    return sum;
}
