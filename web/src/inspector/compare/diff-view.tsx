// A part of two responses: that it is the same, or what changed, by lines.
import { Text, Title, VisuallyHidden } from '@mantine/core'
import { formatCount } from '../../format.ts'
import classes from './compare.module.css'
import { type DiffLine, skipEqual } from './line-diff.ts'

/** How much of a line is shown: a minified file may be one line of megabytes. */
const LINE_CHARS = 2_000
const LINES_MAX = 2_000

const marks = {
  same: { mark: ' ', label: '' },
  removed: { mark: '−', label: 'Removed: ' },
  added: { mark: '+', label: 'Added: ' },
} as const

export function DiffView({ title, lines }: { title: string; lines: readonly DiffLine[] }) {
  const isSame = lines.every(({ type }) => type === 'same')
  const shown = skipEqual(lines)
  return (
    <section aria-label={title}>
      <Title order={3} size="h6" mb={4}>
        {title}
      </Title>
      {isSame ? (
        <Text size="sm" c="dimmed">
          No difference
          {lines.length === 1 && lines[0]?.text ? `: ${lines[0].text.slice(0, LINE_CHARS)}` : '.'}
        </Text>
      ) : (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, also by keyboard
        <section className={classes.diff} tabIndex={0} aria-label={`Differences: ${title}`}>
          {shown.slice(0, LINES_MAX).map((line, index) =>
            line.type === 'skipped' ? (
              <div key={index} className={classes.skipped}>
                {formatCount(line.count)} equal {line.count === 1 ? 'line' : 'lines'}
              </div>
            ) : (
              <div key={index} className={classes.line} data-type={line.type}>
                <span aria-hidden className={classes.mark}>
                  {marks[line.type].mark}
                </span>
                <span>
                  <VisuallyHidden>{marks[line.type].label}</VisuallyHidden>
                  {line.text.length > LINE_CHARS ? `${line.text.slice(0, LINE_CHARS)}…` : line.text}
                </span>
              </div>
            ),
          )}
          {shown.length > LINES_MAX && (
            <div className={classes.skipped}>{formatCount(shown.length - LINES_MAX)} more lines</div>
          )}
        </section>
      )}
    </section>
  )
}
