// Loaded with `node --import`: every name under example.com is this machine.
import dns from 'node:dns'

const { lookup } = dns
dns.lookup = (name, ...rest) => lookup(name.endsWith('.example.com') ? '127.0.0.1' : name, ...rest)
