#!/bin/bash
# A Slurm of two nodes on one machine: munged and slurmctld here, a slurmd in each of two namespaces of two_nodes.sh,
# everything with files of its own. Needs root and the packages of the group "cluster" (tools/debian_packages.txt).
#   slurm_two_nodes.sh up NAME FOLDER            makes nodes NAME1 and NAME2, and FOLDER with all that belongs to them;
#                                                prints SLURM_CONF and the OMPI_MCA_* variables
#   slurm_two_nodes.sh down FOLDER               ends every process of it, and the namespaces
#   slurm_two_nodes.sh exec FOLDER COMMAND...    sbatch, squeue, scontrol and so on of this Slurm
#   slurm_two_nodes.sh node FOLDER NODE          starts slurmd on a node (up does it for both)
# FOLDER is an absolute path that does not exist. A requeued job waits cred_expire (here 15 s, 120 by default) and the
# rest of a minute's turn of the scheduler before it starts again.
set -euo pipefail

here=$(dirname "$(readlink -f "$0")")

configure() {
  local name=$1 folder=$2 net=$3
  cat >"$folder/slurm.conf" <<CONF
ClusterName=$name
SlurmctldHost=$(hostname -s)($net.1)
SlurmUser=root
SlurmctldPort=$((16800 + ${net##*.}))
SlurmdPort=$((16500 + ${net##*.}))
AuthInfo=socket=$folder/munge.socket,cred_expire=15
StateSaveLocation=$folder/state
SlurmctldPidFile=$folder/slurmctld.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdPidFile=$folder/%n.pid
SlurmdLogFile=$folder/%n.log
SlurmdSpoolDir=$folder/spool/%n
TmpFS=$folder/tmp/%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=pmix
SlurmdParameters=config_overrides
SchedulerParameters=batch_sched_delay=1,sched_interval=5,bf_interval=5
SelectType=select/cons_tres
ReturnToService=2
SlurmdTimeout=10
KillWait=30
MinJobAge=3600
JobRequeue=1
NodeName=${name}1 NodeAddr=$net.2 CPUs=4 RealMemory=1000
NodeName=${name}2 NodeAddr=$net.3 CPUs=4 RealMemory=1000
PartitionName=main Nodes=${name}1,${name}2 Default=YES MaxTime=UNLIMITED State=UP OverSubscribe=NO
CONF
}

# Not by `ip netns exec`, which hides /sys/fs/cgroup.
slurmd_on() {
  local folder=$1 node=$2
  mkdir -p "$folder/spool/$node" "$folder/tmp/$node"
  nsenter --net="/run/netns/$node" unshare --uts --mount sh -c '
    hostname "$1" && mount --bind "/etc/netns/$1/hosts" /etc/hosts &&
    exec env SLURM_CONF="$0/slurm.conf" slurmd -N "$1"' "$folder" "$node" </dev/null
}

up() {
  local name=$1 folder=$2 settings net i
  mkdir -m 755 "$folder"
  mkdir -m 700 "$folder/state" "$folder/spool" "$folder/tmp"
  echo "$name" >"$folder/name"
  settings=$("$here/two_nodes.sh" up "$name")
  net=$(sed -n 's/^OMPI_MCA_btl_tcp_if_include=\(.*\)\.0\/24$/\1/p' <<<"$settings")
  configure "$name" "$folder" "$net"
  (umask 077 && dd if=/dev/urandom of="$folder/munge.key" bs=128 count=1 status=none)
  munged --force --key-file="$folder/munge.key" --socket="$folder/munge.socket" --pid-file="$folder/munged.pid" \
    --log-file="$folder/munged.log" --seed-file="$folder/munge.seed" </dev/null >&2
  SLURM_CONF=$folder/slurm.conf slurmctld -c </dev/null >&2
  for i in 1 2; do slurmd_on "$folder" "$name$i" >&2; done
  for i in $(seq 60); do
    [[ $(SLURM_CONF=$folder/slurm.conf sinfo -h -t idle -o %D 2>/dev/null) == 2 ]] && break
    sleep 0.5
    [[ $i -lt 60 ]] || { echo "the two nodes did not become idle; see $folder/*.log" >&2 && exit 1; }
  done
  echo "SLURM_CONF=$folder/slurm.conf"
  grep -v rsh_agent <<<"$settings"
}

# Ends the process of a pid file, if it is still that program, and waits for it.
end_of() {
  local pid i
  pid=$(cat "$1" 2>/dev/null) || return 0
  grep -qs "$2" "/proc/$pid/comm" || return 0
  kill "$pid" 2>/dev/null || return 0
  for i in $(seq 50); do
    readlink -e "/proc/$pid/exe" >/dev/null || return 0  # of a process that nobody has waited for, too
    sleep 0.1
  done
  kill -9 "$pid" 2>/dev/null || true
}

down() {
  local folder=$1 name i pid
  name=$(cat "$folder/name")
  SLURM_CONF=$folder/slurm.conf timeout 10 scancel -p main 2>/dev/null || true
  for i in $(seq 20); do
    [[ -z $(SLURM_CONF=$folder/slurm.conf timeout 10 squeue -h 2>/dev/null) ]] && break || sleep 0.5
  done
  for i in 1 2; do end_of "$folder/$name$i.pid" slurmd; done
  end_of "$folder/slurmctld.pid" slurmctld
  end_of "$folder/munged.pid" munged
  # Steps that a killed slurmd has left behind.
  for i in 1 2; do
    for pid in $(ip netns pids "$name$i" 2>/dev/null); do kill -9 "$pid" 2>/dev/null || true; done
  done
  "$here/two_nodes.sh" down "$name"
}

case $1 in
  up) up "$2" "$3" ;;
  down) down "$2" ;;
  node) slurmd_on "$2" "$3" ;;
  exec) SLURM_CONF=$2/slurm.conf exec "${@:3}" ;;
  *) sed -n '2,/^set/p' "$0" | sed '$d' >&2 && exit 64 ;;
esac
