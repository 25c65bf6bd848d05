package io.boardcluster.jobs;

import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.io.Serializable;
import org.apache.hadoop.conf.Configuration;

/** A Hadoop configuration that can go to the executors. */
final class HadoopSettings implements Serializable {

    private static final long serialVersionUID = 1L;

    private transient Configuration settings;

    HadoopSettings(Configuration settings) {
        this.settings = settings;
    }

    Configuration get() {
        return settings;
    }

    private void writeObject(ObjectOutputStream out) throws IOException {
        settings.write(out);
    }

    private void readObject(ObjectInputStream in) throws IOException {
        settings = new Configuration(false);
        settings.readFields(in);
    }
}
