import { Badge, VisuallyHidden } from '@mantine/core'
import type { ExchangeSummary } from '../../../../src/inspector/api.ts'
import { describeStatus } from './format.ts'

export function StatusBadge({ request }: { request: ExchangeSummary }) {
  const { text, color, label } = describeStatus(request)
  return (
    <Badge color={color} miw={46} flex="none" title={label} className="tabular">
      <span aria-hidden>{text}</span>
      <VisuallyHidden>{label}</VisuallyHidden>
    </Badge>
  )
}
