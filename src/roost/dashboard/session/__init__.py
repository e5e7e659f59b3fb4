"""Sessions of browsers: login, the sealed cookie, and the checks that keep foreign pages out.

seal           a session as a sealed cookie, and the key that seals it
ended          the sessions that were ended before their time
authenticator  the identity of a request, by its session or by a token in its head
guard          the checks of each request: the name it is for, and where it comes from
login          the operations of login and log-out
login_page     the page of login
keystone       login by name and password at Keystone
login_limit    the limit of failed logins
login_methods  the ways to log in
one_time       one-time tokens of printed addresses, for services without authentication
"""
