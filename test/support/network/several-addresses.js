// Loaded with `node --import`: every name under example.com has the addresses of TEST_ADDRESSES, in this
// order.
import dns from 'node:dns'

const addresses = process.env.TEST_ADDRESSES.split(',').map((address) => ({ address, family: 4 }))
const { lookup } = dns
dns.lookup = (name, options, callback) => {
  if (!name.endsWith('.example.com')) return lookup(name, options, callback)
  const [{ address, family }] = addresses
  const answer = options.all ? [addresses] : [address, family]
  process.nextTick(callback, null, ...answer)
}
