// Byte counts in binary units.
const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB']

export function formatBytes(bytes: bigint | number): string {
  let unit = 0
  let value = Number(bytes)
  // From 1023.95 on, one decimal would be printed as 1024.0.
  for (; value >= 1023.95 && unit < UNITS.length - 1; unit++) value /= 1024
  return unit === 0 ? `${bytes} B` : `${value.toFixed(1)} ${UNITS[unit]}`
}
