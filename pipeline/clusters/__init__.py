"""The runners of Beam: Flink, Spark, Dataflow, and pools of workers."""
