"""The commands of `microduck` that simulate and train; `export.cli` adds its own and starts them all."""
