"""What a service tells about its own limit in the headers of an answer."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ToldLimits:
    """The numbers as sent: whoever uses them decides whether they are sane.

    The headers are not in the specification; deployments were seen to send them for the day
    (`X-Rate-Limit-Limit`, `-Remaining`, `-Reset`), and to send zeros where they mean nothing.
    """

    limit: int
    remaining: int
    reset_seconds: int
