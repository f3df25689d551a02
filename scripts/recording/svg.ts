// Terminal sessions as an animated SVG that repeats. It needs no script, so it plays in a README.

export interface Scene {
  command: string
  /** With the escape sequences of colors; others are removed. */
  output: string
  /** Lines appear one after the other instead of together. */
  isOneAtATime: boolean
}

const COLORS: Record<string, string> = { 31: '#f87171', 32: '#4ade80', 33: '#facc15', 2: '#94a3b8' }
const FONT_PX = 14
const LINE_PX = 20
const CHAR_PX = 8.43
const COLUMNS = 100
const PADDING_PX = 20
const TYPING_S = 0.045
const LINE_S = 0.35
const READING_S = 3.5

interface Line {
  row: number
  html: string
  /** In seconds since the start of the animation. */
  from: number
  until: number
  /** Set for a command, which appears one character after the other. */
  typedChars?: number
}

export function animate(scenes: readonly Scene[]): string {
  const lines: Line[] = []
  let now = 0.5
  for (const { command, output, isOneAtATime } of scenes) {
    const shown: Line[] = [{ row: 0, html: escapeText(`$ ${command}`), from: now, until: 0 }]
    ;(shown[0] as Line).typedChars = command.length + 2
    now += command.length * TYPING_S + 0.4
    for (const [index, text] of output.trimEnd().split('\n').entries()) {
      shown.push({ row: index + 1, html: toSpans(text.slice(0, 400)), from: now, until: 0 })
      if (isOneAtATime) now += LINE_S
    }
    now += READING_S
    for (const line of shown) line.until = now
    lines.push(...shown)
  }
  return draw(lines, now)
}

function draw(lines: readonly Line[], seconds: number): string {
  const rows = Math.max(...lines.map(({ row }) => row)) + 1
  const [width, height] = [COLUMNS * CHAR_PX + 2 * PADDING_PX, rows * LINE_PX + 2 * PADDING_PX]
  const percent = (time: number) => `${((time / seconds) * 100).toFixed(2)}%`
  const styles = lines.map(({ from, until, typedChars = 0 }, index) => {
    const typed = percent(from + typedChars * TYPING_S)
    const clip = typedChars
      ? `@keyframes t${index}{0%,${percent(from)}{clip-path:inset(0 100% 0 0)}${typed},100%{clip-path:inset(0)}}`
      : ''
    return `${clip}@keyframes l${index}{0%,${percent(from)}{opacity:0}${percent(from + 0.01)},${percent(until - 0.01)}{opacity:1}${percent(until)},100%{opacity:0}}`
  })
  const texts = lines.map(({ row, html, typedChars }, index) => {
    const typing = typedChars ? `,t${index} ${seconds}s steps(${typedChars}) infinite` : ''
    const y = PADDING_PX + (row + 0.75) * LINE_PX
    return `<text x="${PADDING_PX}" y="${y}" style="animation:l${index} ${seconds}s step-end infinite${typing}">${html}</text>`
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img">
<title>Adit in a terminal: start the server, sign in, share an app on port 3000</title>
<style>text{font:${FONT_PX}px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#e2e8f0;white-space:pre}${styles.join('\n')}</style>
<rect width="100%" height="100%" rx="10" fill="#0f172a"/>
${texts.join('\n')}
</svg>
`
}

const escapeText = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

/** One span for each run of text with a style. */
function toSpans(line: string): string {
  let style = ''
  // biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences of terminals begin with one.
  return [...line.matchAll(/\u001b\[([\d;?]*)([A-Za-z])|([^\u001b\r\u0007]+)/g)]
    .map(([, code = '', kind, text]) => {
      if (text !== undefined) return style ? `<tspan ${style}>${escapeText(text)}</tspan>` : escapeText(text)
      if (kind === 'm')
        style = code === '1' ? 'font-weight="700"' : COLORS[code] ? `fill="${COLORS[code]}"` : ''
      return ''
    })
    .join('')
}
