# Hostile probe info-host-identity (information).
# Prints host name and machine number as it sees them; neither may be the host's own. Looks
# for serial numbers and hardware addresses.
# Prints ESCAPED for each thing that got through, CONTAINED for what did not.
echo "START info-host-identity"
# The test looks for what is the host's own in these lines.
echo "INFO name $(hostname 2>/dev/null || uname -n) $(uname -n) $(cat /proc/sys/kernel/hostname /etc/hostname 2>/dev/null | tr '\n' ' ')"
echo "INFO domain $(cat /proc/sys/kernel/domainname 2>/dev/null)"
for f in /etc/machine-id /var/lib/dbus/machine-id /etc/hosts; do
    [ -r "$f" ] && echo "INFO $f $(tr '\n' ' ' <"$f")"
done
for f in /sys/class/dmi/id/product_uuid /sys/class/dmi/id/product_serial /sys/class/dmi/id/board_serial \
    /sys/class/dmi/id/product_name /sys/class/dmi/id/sys_vendor /sys/class/net/e*/address /sys/hypervisor/uuid \
    /sys/firmware/dmi/tables/DMI /etc/ssh/ssh_host_ed25519_key.pub /etc/ssh/ssh_host_rsa_key.pub; do
    if [ -r "$f" ] && [ -s "$f" ] && head -c 1 "$f" >/dev/null 2>&1; then
        echo "ESCAPED tells the machine by $f"
    fi
done
echo "CONTAINED the rest"
