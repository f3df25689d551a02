// Byte counts in binary units.
const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB']
const wholeNumber = new Intl.NumberFormat('en-US')

export function formatBytes(bytes: bigint | number): string {
  let unit = 0
  let value = Number(bytes)
  for (; value >= 1023.95 && unit < UNITS.length - 1; unit++) value /= 1024
  return unit === 0 ? `${wholeNumber.format(bytes)} B` : `${value.toFixed(1)} ${UNITS[unit]}`
}
