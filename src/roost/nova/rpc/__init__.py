"""The calls and casts of Nova's other services, over oslo.messaging.

    broker ─▶ listener ─▶ a thread for each call ─▶ endpoint ─▶ event loop (decide) ─▶ reply

The threads are those of oslo.messaging's threading executor. Their number, ``[DEFAULT]
executor_thread_pool_size``, is that of the calls decided at once. Further calls wait in their order. A thread
waits while the event loop decides, and oslo.messaging sends the caller heartbeats meanwhile.

The client caps versions: ``[upgrade_levels] scheduler`` of Nova's API and conductors says what they send, and
has no effect here.

oslo                   oslo.messaging, imported without its warnings
transport              the connections to the broker, configured from nova.conf
calls_in_work          the calls that threads wait for while the event loop decides them
endpoint               the methods that Nova calls
exceptions             errors in the form in which Nova's client rebuilds its own exceptions
notifications          the notifications of the start and the end of a call
notification_payloads  their payloads, made of the RequestSpec
server                 the server of topic ``scheduler``: start, state, graceful end
"""
