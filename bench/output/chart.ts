// Throughput against the size of the database, as an SVG that reads well on light and dark pages.
import { writeFileSync } from 'node:fs'
import type { Result } from '../figure.ts'

const FILE = new URL('../../docs/performance.svg', import.meta.url)
const WIDTH = 780
const HEIGHT = 420
const LEFT = 64
const RIGHT = 580
const TOP = 64
const BOTTOM = 348
const LABEL_GAP = 18
const DECADES = { from: 1, to: 7 }

const LINES: Record<string, { label: string; color: string; dark: string }> = {
  verify_flat: { label: 'verifications', color: '#1f6feb', dark: '#6cb0ff' },
  tokens_flat: { label: 'lists of keys', color: '#8250df', dark: '#c297ff' },
  usage_flat: { label: 'reads of usage', color: '#1a7f37', dark: '#56d364' },
  report_flat: { label: 'reports', color: '#bc4c00', dark: '#ffa657' },
}

export const isWhole = (results: Result[]) =>
  Object.keys(LINES).every((name) => results.some(({ figure, series }) => figure.name === name && series))

export function writeChart(results: Result[]): void {
  writeFileSync(FILE, chart(results))
}

function chart(results: Result[]): string {
  const drawn = results.filter(({ figure, series }) => series && LINES[figure.name])
  const most = Math.max(1, ...drawn.flatMap(({ series = [] }) => series.map(({ relative }) => relative)))
  const top = Math.max(1.2, Math.ceil(most * 5) / 5)
  const x = (size: number) =>
    LEFT + ((Math.log10(size) - DECADES.from) / (DECADES.to - DECADES.from)) * (RIGHT - LEFT)
  const y = (relative: number) => BOTTOM - (relative / top) * (BOTTOM - TOP)
  const labels = spreadLabels(drawn.map(({ series = [] }) => y(series.at(-1)?.relative ?? 0)))
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}"`,
    '  role="img" aria-labelledby="t d">',
    '<title id="t">Throughput against the size of the database</title>',
    '<desc id="d">Each line is relative to its own smallest database;',
    'a flat line means that growth costs nothing.</desc>',
    style(),
    `<rect class="page" width="${WIDTH}" height="${HEIGHT}" rx="8"/>`,
    text(LEFT, 28, 'Throughput as the database grows', 'title'),
    text(LEFT, 47, 'relative to the smallest database of each line', 'axis'),
    ...rules(top, y),
    ...ticks(x),
    ...drawn.map(({ figure, series = [] }, index) => line(figure.name, series, labels[index] ?? 0, x, y)),
    '</svg>',
    '',
  ].join('\n')
}

const text = (x: number, y: number, content: string, kind: string, anchor = 'start') =>
  `<text class="${kind}" x="${round(x)}" y="${round(y)}" text-anchor="${anchor}">${content}</text>`

const round = (value: number) => Math.round(value * 10) / 10

function rules(top: number, y: (relative: number) => number): string[] {
  return Array.from({ length: Math.round(top / 0.2) + 1 }, (_, index) => index * 0.2).flatMap((value) => {
    const kind = Math.abs(value - 1) < 0.01 ? 'one' : 'rule'
    const at = round(y(value))
    return [
      `<line class="${kind}" x1="${LEFT}" x2="${RIGHT}" y1="${at}" y2="${at}"/>`,
      text(LEFT - 8, y(value) + 4, value.toFixed(1), 'axis', 'end'),
    ]
  })
}

function ticks(x: (size: number) => number): string[] {
  const names = ['10', '100', '1 k', '10 k', '100 k', '1 M', '10 M']
  return [
    ...names.map((name, index) => text(x(10 ** (DECADES.from + index)), BOTTOM + 20, name, 'axis', 'middle')),
    text((LEFT + RIGHT) / 2, BOTTOM + 46, 'rows: keys, or counters that edges reported', 'axis', 'middle'),
  ]
}

function line(
  name: string,
  series: { size: number; relative: number }[],
  labelY: number,
  x: (size: number) => number,
  y: (relative: number) => number,
): string {
  const points = series.map(({ size, relative }) => [round(x(size)), round(y(relative))] as const)
  const last = points.at(-1) ?? [RIGHT, BOTTOM]
  const { label } = LINES[name] as { label: string }
  const end = series.at(-1)?.relative.toFixed(2)
  return [
    `<g class="${name}">`,
    `<polyline points="${points.map((point) => point.join(',')).join(' ')}"/>`,
    ...points.map(([cx, cy]) => `<circle cx="${cx}" cy="${cy}" r="4"/>`),
    `<path class="lead" d="M${last[0] + 6} ${last[1]}L${RIGHT + 12} ${round(labelY)}"/>`,
    text(RIGHT + 18, labelY + 4, `${label} ${end}`, 'label'),
    '</g>',
  ].join('')
}

/** Moves labels apart, keeping their order. */
function spreadLabels(wanted: number[]): number[] {
  const order = wanted.map((y, index) => ({ y, index })).sort((a, b) => a.y - b.y)
  const places: number[] = []
  let free = Number.NEGATIVE_INFINITY
  for (const { y, index } of order) {
    places[index] = Math.max(y, free)
    free = (places[index] as number) + LABEL_GAP
  }
  return places
}

function style(): string {
  const colors = (shade: 'color' | 'dark') =>
    Object.entries(LINES)
      .map(([name, of]) => `.${name}{stroke:${of[shade]};fill:${of[shade]}}`)
      .join('')
  return `<style>
text{font:13px system-ui,sans-serif;stroke:none}.title{font-size:16px;font-weight:600}
polyline{fill:none;stroke-width:2.5}circle{stroke:none}
.lead{fill:none;stroke-width:1;opacity:.6}.label{font-weight:600}
.page{fill:#fff}.title{fill:#1f2328}.axis{fill:#59636e}.rule{stroke:#d1d9e0}
.one{stroke:#59636e;stroke-dasharray:4 4}
${colors('color')}
@media (prefers-color-scheme:dark){
.page{fill:#0d1117}.title{fill:#f0f6fc}.axis{fill:#9198a1}.rule{stroke:#2a313c}.one{stroke:#9198a1}
${colors('dark')}}
</style>`
}
