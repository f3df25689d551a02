// The simulated hour as an SVG that reads well on light and dark pages: three panels over the same time.
import type { Bucket } from './model.ts'

const WIDTH = 780
const LEFT = 64
const RIGHT = 740
const PANEL = 120
const GAP = 46
const TOP = 92
const SECONDS_PER_MINUTE = 60

export interface Line {
  kind: 'with' | 'without'
  buckets: readonly Bucket[]
}

interface Panel {
  title: string
  unit: string
  read: (bucket: Bucket) => number
  max: number
}

export interface Mark {
  second: number
  label: string
}

export function chart(lines: readonly Line[], marks: readonly Mark[], seconds: number): string {
  const top = (read: (bucket: Bucket) => number) =>
    niceMax(Math.max(...lines.flatMap(({ buckets }) => buckets.map(read))))
  const panels: Panel[] = [
    { title: 'Time spent merging', unit: '%', read: ({ busy }) => Math.min(100, 100 * busy), max: 100 },
    {
      title: 'Reports per second',
      unit: '',
      read: ({ reports }) => reports / 10,
      max: top((one) => one.reports / 10),
    },
    {
      title: 'Longest time until usage was in a total',
      unit: ' s',
      read: ({ ageMaxS }) => ageMaxS,
      max: top(({ ageMaxS }) => ageMaxS),
    },
  ]
  const height = TOP + panels.length * (PANEL + GAP) + 8
  const x = (second: number) => LEFT + (second / seconds) * (RIGHT - LEFT)
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-labelledby="t d">`,
    '<title id="t">Simulated reports of 10,000 edges for a million workspaces</title>',
    '<desc id="d">With back-pressure the nodes merge half of the time;',
    'without it they are saturated and reject reports.</desc>',
    style,
    `<rect class="page" width="${WIDTH}" height="${height}" rx="8"/>`,
    text(LEFT, 28, 'Reports of 10,000 edges for a million workspaces, simulated', 'title'),
    ...legend(),
    ...panels.flatMap((panel, index) =>
      draw(panel, TOP + index * (PANEL + GAP), { lines, marks, seconds, x }),
    ),
    '</svg>',
    '',
  ].join('\n')
}

interface Drawing {
  lines: readonly Line[]
  marks: readonly Mark[]
  seconds: number
  x: (second: number) => number
}

function draw(panel: Panel, top: number, { lines, marks, seconds, x }: Drawing): string[] {
  const y = (value: number) => top + PANEL - (Math.min(value, panel.max) / panel.max) * PANEL
  const points = (buckets: readonly Bucket[]) =>
    buckets.map((bucket) => `${round(x(bucket.second))},${round(y(panel.read(bucket)))}`).join(' ')
  const minutes = Array.from(
    { length: Math.floor(seconds / SECONDS_PER_MINUTE / 5) + 1 },
    (_, index) => index * 5,
  )
  return [
    text(LEFT, top - 10, panel.title, 'label'),
    ...[0, panel.max / 2, panel.max].flatMap((value) => [
      `<line class="rule" x1="${LEFT}" x2="${RIGHT}" y1="${round(y(value))}" y2="${round(y(value))}"/>`,
      text(LEFT - 8, y(value) + 4, `${value.toLocaleString('en')}${panel.unit}`, 'axis', 'end'),
    ]),
    ...marks.flatMap(({ second, label }) => [
      `<line class="mark" x1="${round(x(second))}" x2="${round(x(second))}" y1="${top}" y2="${top + PANEL}"/>`,
      text(x(second) + 4, top + 12, label, 'axis'),
    ]),
    ...minutes.map((minute) =>
      text(x(minute * SECONDS_PER_MINUTE), top + PANEL + 16, `${minute} min`, 'axis', 'middle'),
    ),
    ...lines.map(({ kind, buckets }) => `<polyline class="${kind}" points="${points(buckets)}"/>`),
  ]
}

const legend = () => [
  `<line class="with" x1="${LEFT}" x2="${LEFT + 24}" y1="48" y2="48"/>`,
  text(LEFT + 32, 52, 'with back-pressure', 'axis'),
  `<line class="without" x1="${LEFT + 180}" x2="${LEFT + 204}" y1="48" y2="48"/>`,
  text(LEFT + 212, 52, 'edges that report every 5 seconds regardless', 'axis'),
]

/** The next of 1, 2, 5, 10, 20, 50 … */
function niceMax(value: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, value)))
  return ([1, 2, 5, 10].find((step) => step * power >= value) ?? 10) * power
}

const text = (x: number, y: number, content: string, kind: string, anchor = 'start') =>
  `<text class="${kind}" x="${round(x)}" y="${round(y)}" text-anchor="${anchor}">${content}</text>`

const round = (value: number) => Math.round(value * 10) / 10

const style = `<style>
text{font:13px system-ui,sans-serif;stroke:none}.title{font-size:16px;font-weight:600}.label{font-weight:600}
polyline,.with,.without{fill:none;stroke-width:2}.mark{stroke-dasharray:3 4}
.page{fill:#fff}.title,.label{fill:#1f2328}.axis{fill:#59636e}.rule{stroke:#d1d9e0}.mark{stroke:#59636e}
.with{stroke:#1f6feb}.without{stroke:#bc4c00}
@media (prefers-color-scheme:dark){
.page{fill:#0d1117}.title,.label{fill:#f0f6fc}.axis{fill:#9198a1}.rule{stroke:#2a313c}.mark{stroke:#9198a1}
.with{stroke:#6cb0ff}.without{stroke:#ffa657}}
</style>`
