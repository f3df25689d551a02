// A QR code, drawn as one path: dark on white with a margin, also in the dark, because scanners want it so.
import { encode } from 'uqr'

const MARGIN = 4
const SHOWN_PX = 176

export function QrCode({ text, name }: { text: string; name: string }) {
  const { size, data } = encode(text, { ecc: 'M', border: MARGIN })
  const shape = data
    .flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : [])))
    .join('')
  return (
    <svg
      role="img"
      aria-label={name}
      width={SHOWN_PX}
      height={SHOWN_PX}
      viewBox={`0 0 ${size} ${size}`}
      shapeRendering="crispEdges"
    >
      <rect width={size} height={size} fill="#fff" />
      <path d={shape} fill="#000" />
    </svg>
  )
}
