"""Compressed answers: they pass as they come, once it is known that no secret is in them."""

import zlib

from bot.clients.calls import ServiceCall
from bot.clients.failures import too_large
from bot.gateway.bodies import MOST_BYTES, PIECE_BYTES, Mask
from bot.model.gateway_requests import READABLE_CODINGS
from bot.service_errors import ResponseUnreadable

_GZIP_OR_ZLIB = 47


class PackedScan:
    """Looks through a compressed body, piece by piece.

    Args:
        call: How errors speak about it.
        coding: Its `Content-Encoding`.
        mask: Knows the secrets.

    Raises:
        ResponseUnreadable: There is no looking into it.
    """

    def __init__(self, call: ServiceCall, coding: str, mask: Mask) -> None:
        self._call = call
        self._mask = mask
        self._unpacker = zlib.decompressobj(_GZIP_OR_ZLIB)
        self._size = 0
        if coding not in READABLE_CODINGS:
            raise self._unreadable()

    def look(self, piece: bytes) -> None:
        """Look at the next piece.

        Raises:
            ResponseUnreadable: A secret is there, or there is no looking into it.
            ResponseTooLarge: Unpacked, it is larger than what is passed on.
        """
        plain = b""
        # What was unpacked may be kept back though all of the piece was read.
        while piece or len(plain) == PIECE_BYTES:
            plain = self._unpacked(piece)
            piece = self._unpacker.unconsumed_tail
            self._size += len(plain)
            if self._size > MOST_BYTES:
                raise too_large(self._call, MOST_BYTES)
            if self._mask.sees(plain):
                sentence = f"{self._call.subject} repeated Gatehouse's credentials in its answer."
                raise ResponseUnreadable(self._call.service, sentence)

    def _unpacked(self, piece: bytes) -> bytes:
        try:
            plain = self._unpacker.decompress(piece, PIECE_BYTES)
        except zlib.error:
            raise self._unreadable() from None
        if self._unpacker.unused_data:
            raise self._unreadable()
        return plain

    def _unreadable(self) -> ResponseUnreadable:
        sentence = f"{self._call.subject} compressed its answer in a way that can't be read."
        return ResponseUnreadable(self._call.service, sentence)
