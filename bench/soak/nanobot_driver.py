"""Run nanobot's own agent loop in this process: each line of stdin is a message. For ``bench/soak/soak_nanobot.py``.

    python bench/soak/nanobot_driver.py CONFIG        (in an environment with nanobot-ai 0.3)

It prints ``done`` after each message, and after the background work of ``/dream``.
"""

from __future__ import annotations

import asyncio
import sys

from nanobot.nanobot import Nanobot


async def main() -> None:
    bot = Nanobot.from_config(sys.argv[1])
    for line in sys.stdin:
        await bot.run(line.strip())
        dreams = [task for task in asyncio.all_tasks() if getattr(task.get_coro(), "__name__", "") == "_run_dream"]
        if dreams:
            await asyncio.wait(dreams)
        print("done", flush=True)


if __name__ == "__main__":
    asyncio.run(main())
