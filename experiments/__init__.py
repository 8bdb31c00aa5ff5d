"""One short file for each experiment. They use the public interface, and data from `--data` or DPEXPLAIN_DATA that is never committed."""
