// A QR code as a single SVG path. Dark on white with a margin, as scanners require, in both color schemes.
import { encode } from 'uqr'

const MARGIN = 4
const SIZE_PX = 160

export function QrCode({ text, name }: { text: string; name: string }) {
  const { size, data } = encode(text, { ecc: 'M', border: MARGIN })
  const shape = data
    .flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : [])))
    .join('')
  return (
    <svg
      role="img"
      aria-label={name}
      width={SIZE_PX}
      height={SIZE_PX}
      viewBox={`0 0 ${size} ${size}`}
      shapeRendering="crispEdges"
    >
      <rect width={size} height={size} fill="#fff" />
      <path d={shape} fill="#000" />
    </svg>
  )
}
