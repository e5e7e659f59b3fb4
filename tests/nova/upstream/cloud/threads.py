"""Native threads for Nova's code in this process. To be imported before anything else of Nova."""

from nova import monkey_patch

monkey_patch.patch(backend="threading")
