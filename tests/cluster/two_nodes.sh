#!/bin/bash
# Two "nodes" on one machine: network namespaces with their own host names, joined by a bridge to this one.
# Needs root and iproute2; everything it makes carries NAME and goes away with `down`.
#   two_nodes.sh up NAME [COUNT]   makes NAME1 (10.77.N.2) and NAME2 (10.77.N.3), or as many as COUNT says, at most 9;
#                                  prints the OMPI_MCA_* variables for mpirun
#   two_nodes.sh down NAME
#   two_nodes.sh cut|heal NAME2    takes the link of one node down, or up again
#   two_nodes.sh rate NAME 1gbit   shapes what both nodes send; "none" ends it
#   two_nodes.sh shape NAME2 tbf rate 1mbit burst 16kb latency 400ms   the same of one node, by any queueing discipline
#   two_nodes.sh lose NAME2 0.05   drops that share of what comes to one node (1: it hears nobody); 0 ends it
# mpirun calls it, as its rsh agent, with the name of a node and a command.
set -euo pipefail

self=$(readlink -f "$0")

# A number from 0 to 255 for the addresses of a pair.
octet() { printf '%d' $((0x$(printf '%s' "$1" | md5sum | cut -c1-2))); }

# Runs a command on a node, under the node's host name.
on_node() {
  local node=$1
  shift
  exec ip netns exec "$node" unshare --uts sh -c 'hostname "$0"; exec sh -c "$*"' "$node" "$@"
}

up() {
  local name=$1 count=${2:-2} net node hosts='127.0.0.1 localhost\n' i
  net=10.77.$(octet "$name")
  ip link add "$name" type bridge
  ip addr add "$net.1/24" dev "$name"
  ip link set "$name" up
  for ((i = 1; i <= count; i++)); do hosts+="$net.$((i + 1)) $name$i\n"; done
  for ((i = 1; i <= count; i++)); do
    node=$name$i
    ip netns add "$node"
    ip link add "$node" type veth peer name eth0 netns "$node"
    ip link set "$node" master "$name" up
    ip -n "$node" link set lo up
    ip -n "$node" link set eth0 up
    ip -n "$node" addr add "$net.$((i + 1))/24" dev eth0
    ip -n "$node" route add default via "$net.1"
    mkdir -p "/etc/netns/$node"
    printf '%b' "$hosts" >"/etc/netns/$node/hosts"
  done
  echo "OMPI_MCA_plm_rsh_agent=$self"
  echo "OMPI_MCA_btl=tcp,self"
  echo "OMPI_MCA_btl_tcp_if_include=$net.0/24"
  echo "OMPI_MCA_oob_tcp_if_include=$net.0/24"
}

down() {
  local node
  for node in "$1"{1..9}; do
    # mpirun's daemon on a node that was cut off waits for ever.
    ip netns pids "$node" 2>/dev/null | xargs --no-run-if-empty kill -9 2>/dev/null || true
    ip netns del "$node" 2>/dev/null || true
    ip link del "$node" 2>/dev/null || true
    rm -rf "/etc/netns/$node"
  done
  ip link del "$1" 2>/dev/null || true
}

rate() {
  local node
  for node in "${1}1" "${1}2"; do
    tc -n "$node" qdisc del dev eth0 root 2>/dev/null || true
    [[ $2 == none ]] || tc -n "$node" qdisc add dev eth0 root tbf rate "$2" burst 512kb latency 100ms
  done
}

# Needs iptables: a kernel may have that and no netem.
lose() {
  ip netns exec "$1" iptables --flush INPUT
  [[ $2 == 0 ]] || ip netns exec "$1" iptables --append INPUT --match statistic --mode random --probability "$2" --jump DROP
}

case $1 in
  up) up "${@:2}" ;;
  down) down "$2" ;;
  cut) ip link set "$2" down ;;
  heal) ip link set "$2" up ;;
  rate) rate "$2" "$3" ;;
  lose) lose "$2" "$3" ;;
  shape) tc -n "$2" qdisc replace dev eth0 root "${@:3}" ;;
  *) on_node "$@" ;;
esac
