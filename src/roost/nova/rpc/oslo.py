"""oslo.messaging, imported without its warnings. Only the program ``roost nova-scheduler`` imports this.

oslo.messaging imports oslo.service, which imports eventlet, which warns. oslo.service's other backend needs
another package, and oslo.messaging imports eventlet all the same. Nothing here patches the standard library,
and so oslo.messaging uses threads.
"""

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import oslo_messaging
    from oslo_messaging.rpc import dispatcher as rpc_dispatcher
    from oslo_messaging.rpc import server as rpc_server

__all__ = ["oslo_messaging", "rpc_dispatcher", "rpc_server"]
