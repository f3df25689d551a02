import { Paper, SimpleGrid, Stack, Text, Title } from '@mantine/core'
import type { ReactNode } from 'react'

interface SectionProps {
  title: string
  lead: string
  children: ReactNode
}

export function Section({ title, lead, children }: SectionProps) {
  return (
    <Paper p="lg" component="section">
      <SimpleGrid cols={{ base: 1, md: 2 }} spacing="lg">
        <Stack gap={4}>
          <Title order={2} size="h4">
            {title}
          </Title>
          <Text size="sm" c="dimmed" maw={380}>
            {lead}
          </Text>
        </Stack>
        <div>{children}</div>
      </SimpleGrid>
    </Paper>
  )
}

/** Says that something was done, also to those who do not see it. */
export function Done({ when, children }: { when: boolean; children: string }) {
  return (
    <Text size="sm" c="var(--mantine-color-green-text)" role="status">
      {when && children}
    </Text>
  )
}
