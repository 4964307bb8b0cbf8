# Hostile probe net-unix-paths (network).
# Connects to sockets by their paths: the daemon's own, the database's, container engines',
# the system bus, the test's.
# Prints ESCAPED for each thing that got through, CONTAINED for what did not.
use strict;
use warnings;
use Socket;
$| = 1;
print "START net-unix-paths\n";
my @paths = map { glob $_ } qw(
  /run/auditrun*.sock /run/auditrun/* /var/run/auditrun/* /tmp/auditrun*.sock /var/lib/auditrun/*.sock
  /run/postgresql/.s.PGSQL.* /var/run/postgresql/.s.PGSQL.* /tmp/.s.PGSQL.*
  /run/docker.sock /var/run/docker.sock /run/containerd/containerd.sock /run/podman/podman.sock /run/crio/crio.sock
  /run/dbus/system_bus_socket /var/run/dbus/system_bus_socket /run/systemd/private /run/systemd/notify
  /run/systemd/journal/* /dev/log /run/user/*/bus /run/user/*/* /tmp/.X11-unix/* /tmp/ssh-*/agent.* /run/nscd/socket
  /run/snapd.socket /run/mysqld/mysqld.sock /run/redis/*.sock /tmp/hostile-canary.sock /var/tmp/hostile-canary.sock
  /run/hostile-canary.sock);
push @paths, $ENV{SSH_AUTH_SOCK} if $ENV{SSH_AUTH_SOCK};
my $tried = 0;
for my $path (@paths) {
    next unless -S $path;
    for my $type (SOCK_STREAM, SOCK_DGRAM, 5) {
        $tried++;
        socket(my $s, PF_UNIX, $type, 0) or next;
        if (connect $s, sockaddr_un($path)) {
            print "ESCAPED connected to $path\n";
        }
        close $s;
    }
}
print "CONTAINED the rest of $tried tries at sockets by path\n";
