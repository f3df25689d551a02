// Hexadecimal lines: offset, 16 bytes, and ASCII.
const LINE_BYTES = 16

export function hexLines(bytes: Buffer): string {
  const lines: string[] = []
  for (let offset = 0; offset < bytes.length; offset += LINE_BYTES) {
    const part = bytes.subarray(offset, offset + LINE_BYTES)
    const hex = Array.from(part, (byte) => byte.toString(16).padStart(2, '0'))
    const columns = `${hex.slice(0, 8).join(' ')}  ${hex.slice(8).join(' ')}`.padEnd(3 * LINE_BYTES)
    const ascii = part.toString('latin1').replace(/[^\x20-\x7e]/g, '.')
    lines.push(`${offset.toString(16).padStart(8, '0')}  ${columns}  ${ascii}`)
  }
  return lines.join('\n')
}
