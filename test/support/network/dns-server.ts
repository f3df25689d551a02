// A real DNS server on loopback, which answers from a table.
import { createSocket, type RemoteInfo } from 'node:dgram'
import { Resolver } from 'node:dns/promises'
import { once } from 'node:events'
import { isIPv4, isIPv6 } from 'node:net'
import { atEnd, type Test } from '../cleanup.ts'

const HEADER_BYTES = 12
const TYPE_A = 1
const TYPE_AAAA = 28
const CODES = { found: 0, failed: 2, unknown: 3 }

/**
 * `addresses` returns the addresses of a name, IPv6 without abbreviation: undefined if there is no such name,
 * `failed` if the server cannot say. Returns a resolver that asks this server.
 */
export async function startDnsServer(
  t: Test,
  addresses: (name: string) => readonly string[] | 'failed' | undefined,
): Promise<Resolver> {
  const socket = createSocket('udp4')
  socket.on('message', (query: Buffer, { port, address }: RemoteInfo) => {
    const { name, type, end } = readQuestion(query)
    const found = addresses(name)
    const isOfType = type === TYPE_A ? isIPv4 : type === TYPE_AAAA ? isIPv6 : () => false
    const records = Array.isArray(found) ? found.filter(isOfType) : []
    const code = found === undefined ? CODES.unknown : found === 'failed' ? CODES.failed : CODES.found
    const header = Buffer.from(query.subarray(0, HEADER_BYTES))
    header.writeUInt16BE(0x8180 | code, 2)
    header.writeUInt16BE(records.length, 6)
    header.writeUInt32BE(0, 8)
    const answers = records.map((ip) => {
      const bytes = octets(ip)
      return Buffer.from([0xc0, HEADER_BYTES, 0, type, 0, 1, 0, 0, 0, 60, 0, bytes.length, ...bytes])
    })
    socket.send(Buffer.concat([header, query.subarray(HEADER_BYTES, end), ...answers]), port, address)
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  atEnd(t, () => socket.close())
  const resolver = new Resolver({ timeout: 2_000, tries: 1 })
  resolver.setServers([`127.0.0.1:${socket.address().port}`])
  return resolver
}

const octets = (ip: string) =>
  isIPv4(ip)
    ? ip.split('.').map(Number)
    : ip.split(':').flatMap((group) => [...Buffer.from(group.padStart(4, '0'), 'hex')])

function readQuestion(query: Buffer) {
  const labels: string[] = []
  let at = HEADER_BYTES
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
  return { name: labels.join('.').toLowerCase(), type: query.readUInt16BE(at + 1), end: at + 5 }
}
