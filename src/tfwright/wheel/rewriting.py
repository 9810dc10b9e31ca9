"""A wheel with other content in some of its files, or under other names: the rest stays packed.

Half a gigabyte takes seconds, since nothing is compressed again.
"""

import stat
import zipfile
import zlib
from collections.abc import Callable, Mapping
from typing import IO

from tfwright.wheel import archive, record
from tfwright.wheel.binary.elf_image import Content


def rewrite(
    wheel: zipfile.ZipFile,
    target: IO[bytes],
    changed: Mapping[str, Content],
    renamed: Callable[[str], str] = str,
) -> None:
    """Write `wheel` to `target` with the `changed` files, each under the name that it gets.

    The same wheel and changes give the same bytes. A line of RECORD follows its file only if it was
    true before: a false one stays to be found.
    """
    listing = f"{archive.metadata_directory(wheel)}/RECORD"
    lines = []
    for line in record.read(wheel):
        name, content = renamed(line.path), changed.get(line.path)
        if content and line == record.describe(wheel, wheel.getinfo(line.path)):
            lines.append(record.entry(name, content))
        else:
            lines.append(line._replace(path=name))
    contents = {**changed, listing: record.render(lines).encode()}
    moment = wheel.infolist()[0].date_time
    with zipfile.ZipFile(target, "w") as made:
        # RECORD comes last, as in every wheel.
        for member in sorted(archive.files(wheel), key=lambda member: member.filename == listing):
            new = zipfile.ZipInfo(renamed(member.filename), moment)
            # The upper half holds the Unix mode; 0 where another system made the archive.
            new.external_attr = (member.external_attr >> 16 or stat.S_IFREG | 0o644) << 16
            if content := contents.get(member.filename):
                new.CRC, new.compress_size = zlib.crc32(content), len(content)
                new.file_size = new.compress_size
                archive.append_packed(made, new, [content])
            else:
                new.compress_type, new.CRC = member.compress_type, member.CRC
                new.compress_size, new.file_size = member.compress_size, member.file_size
                archive.append_packed(made, new, archive.packed_bytes(wheel, member))
