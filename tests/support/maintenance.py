"""An independent check of maintenance plans: each wave is played guest by guest, with plain dictionaries."""

from collections import Counter, defaultdict

from roost.scheduler.maintenance.plan import FleetToMaintain, MaintenancePlan


def faults_of(fleet: FleetToMaintain, plan: MaintenancePlan) -> list[str]:
    """Return what is wrong with a plan, in words; empty if it is valid. The reserve is checked apart."""
    faults: list[str] = []
    hosts = {host.name: host for host in fleet.hosts}
    guests = {guest.uuid: guest for guest in fleet.guests}
    at = {guest.uuid: guest.host for guest in fleet.guests}
    moves = Counter[str]()
    done: list[str] = []
    for number, wave in enumerate(plan.waves, 1):
        out = set(wave.hosts)
        if not out:
            faults.append(f"wave {number} is empty")
        if fleet.most_hosts is not None and len(out) > fleet.most_hosts:
            faults.append(f"wave {number} has {len(out)} hosts")
        started = dict(at)
        seen: set[str] = set()
        for move in wave.moves:
            guest, target = guests[move.guest], hosts[move.target]
            if guest.uuid in seen or started[guest.uuid] != move.source:
                faults.append(f"wave {number}: {guest.uuid} is not on {move.source}")
            if move.source not in out or move.target in out:
                faults.append(f"wave {number}: {guest.uuid} goes from {move.source} to {move.target}")
            if (
                guest.stays is not None
                or not target.takes_guests
                or target.name not in fleet.kinds[guest.kind]
            ):
                faults.append(f"wave {number}: {guest.uuid} may not go to {move.target}")
            seen.add(guest.uuid)
            moves[guest.uuid] += 1
            at[guest.uuid] = target.name
        faults += [f"wave {number}: {uuid} is still on {host}" for uuid, host in at.items() if host in out]
        # All guests of the wave are counted on their source, and on their target.
        for name, host in hosts.items():
            there = [guests[uuid] for uuid in guests if name in (at[uuid], started[uuid])]
            came = [each for each in there if at[each.uuid] == name and started[each.uuid] != name]
            used = Counter(host.taken)
            for each in there:
                used.update(each.amounts)
            claimed = {resource_class for each in came for resource_class in each.amounts}
            faults += [
                f"wave {number}: {name} has {used[each]} {each}"
                for each in claimed
                if used[each] > host.capacity.get(each, 0)
            ]
            members = Counter(each.group for each in there if each.group in fleet.groups)
            joined = {each.group for each in came if each.group in fleet.groups}
            faults += [
                f"wave {number}: {name} has {members[group]} members of {group}"
                for group in joined
                if group is not None and members[group] > fleet.groups[group]
            ]
        done += wave.hosts
    done += [each.host for each in plan.left_out]
    wanted = [host.name for host in fleet.hosts if host.selected]
    if sorted(done) != sorted(wanted):
        faults.append(f"hosts are in no wave, or in two: {sorted(done)}")
    faults += [f"{uuid} moves {number} times" for uuid, number in moves.items() if number > 2]
    return faults


def unsheltered_hosts(fleet: FleetToMaintain, plan: MaintenancePlan) -> list[tuple[int, str]]:
    """Return the number of a wave and a host whose guests do not fit on the others outside.

    By exhaustive search, so only for small fleets: guests are placed one by one in each possible way.
    """
    at = {guest.uuid: guest.host for guest in fleet.guests}
    lacking = []
    for number, wave in enumerate(plan.waves, 1):
        at |= {move.guest: move.target for move in wave.moves}
        lacking += [
            (number, host.name)
            for host in fleet.hosts
            if host.name not in wave.hosts and not _fits_elsewhere(fleet, at, set(wave.hosts), host.name)
        ]
    return lacking


def _fits_elsewhere(fleet: FleetToMaintain, at: dict[str, str], wave: set[str], dead: str) -> bool:
    free: dict[str, Counter[str]] = {}
    members: dict[str, Counter[str | None]] = defaultdict(Counter)
    for host in fleet.hosts:
        if host.takes_guests and host.name not in wave and host.name != dead:
            free[host.name] = Counter(host.capacity)
            free[host.name].subtract(host.taken)
    for guest in fleet.guests:
        if at[guest.uuid] in free:
            free[at[guest.uuid]].subtract(guest.amounts)
            members[at[guest.uuid]][guest.group] += 1
    homeless = [guest for guest in fleet.guests if at[guest.uuid] == dead]

    def place(left: int) -> bool:
        if not left:
            return True
        guest = homeless[left - 1]
        for name in free:
            room = all(free[name][each] >= amount for each, amount in guest.amounts.items())
            alone = (
                guest.group not in fleet.groups
                or members[name][guest.group] < fleet.groups[guest.group or ""]
            )
            if not (room and alone and name in fleet.kinds[guest.kind]):
                continue
            free[name].subtract(guest.amounts)
            members[name][guest.group] += 1
            if place(left - 1):
                return True
            free[name].update(guest.amounts)
            members[name][guest.group] -= 1
        return False

    return place(len(homeless))
